import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';

/**
 * Loaded before the tests of an author: `@plugin-host/sdk/test` is the test host of this program, and a file without code is a
 * module that runs the tests in it.
 */

const here = (name: string): string =>
  new URL(`./${name}${import.meta.filename.slice(import.meta.filename.lastIndexOf('.'))}`, import.meta.url).href;

// Each sandbox of a test has threads, whose output goes here.
for (const stream of [process.stdout, process.stderr]) stream.setMaxListeners(0);

registerHooks({
  resolve: (specifier, context, next) =>
    specifier === '@plugin-host/sdk/test' ? { url: here('test-host'), shortCircuit: true } : next(specifier, context),
  load(url, context, next) {
    if (!url.endsWith('.http')) return next(url, context);
    const [module, file] = [here('run-fixture'), fileURLToPath(url)].map(text => JSON.stringify(text));
    const source = `import { runFixture } from ${module};\nrunFixture(${file});\n`;
    return { format: 'module', source, shortCircuit: true };
  },
});
