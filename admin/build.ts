import fs from 'node:fs';
import path from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import react from '@vitejs/plugin-react';
import { PurgeCSS } from 'purgecss';
import { build } from 'vite';

/**
 * Builds the administration pages into a directory: `node admin/build.ts DIRECTORY`. A file that packs well is kept as
 * `.br` and `.gz` alone, so that no request waits for packing; few clients take neither.
 */
const WORTH_BYTES = 1024;
/** What each page has of its own: in a file of both it would run in both. */
const ENTRIES = /\/admin\/(?:[\w-]+\.html|src\/(?:main\.tsx|user\/))/;
const PACKABLE = /\.(js|css|svg|html)$/;

const [target] = process.argv.slice(2);
if (target === undefined) throw new Error('say where to: node admin/build.ts DIRECTORY');
await build({
  // Nothing is written next to the sources: the account that starts the service may only read them.
  configFile: false,
  cacheDir: path.join(path.resolve(target), '.cache'),
  root: import.meta.dirname,
  base: '/admin/',
  logLevel: 'warn',
  plugins: [react()],
  // The packages of tests bring an older React, which stands where packages of both are found.
  resolve: { dedupe: ['react', 'react-dom'] },
  build: {
    outDir: path.resolve(target),
    // Its files are named after their contents, and may be kept for ever.
    assetsDir: 'assets',
    assetsInlineLimit: 0,
    emptyOutDir: true,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 1000,
    rolldownOptions: {
      input: ['index.html', 'user.html'].map(name => path.join(import.meta.dirname, name)),
      output: {
        // A browser asks for a few files at a time: by itself the bundler makes a hundred for one screen.
        codeSplitting: {
          groups: [
            { name: 'first', tags: ['$initial'], test: id => !ENTRIES.test(id), priority: 2 },
            { name: 'kit', test: /node_modules/, minShareCount: 3, priority: 1 },
            { name: 'parts', minShareCount: 3 },
          ],
        },
      },
    },
  },
});
await removeUnusedStyles(path.join(target, 'assets'));
for (const name of fs.readdirSync(target, { recursive: true, encoding: 'utf8' })) {
  const file = path.join(target, name);
  if (!PACKABLE.test(name) || fs.statSync(file).size < WORTH_BYTES || name.endsWith('.html')) continue;
  const bytes = fs.readFileSync(file);
  fs.writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }));
  fs.rmSync(file);
  fs.writeFileSync(`${file}.br`, brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }));
}

/** Removes rules of components that no code names: the kit brings the styles of all of its components. */
async function removeUnusedStyles(assets: string): Promise<void> {
  const styles = fs.readdirSync(assets).filter(f => f.endsWith('.css'));
  const text = styles.map(f => fs.readFileSync(path.join(assets, f), 'utf8')).join('\n');
  // Their names are put together at run time.
  const dynamicAttributes = [...new Set([...text.matchAll(/\[([a-z][\w-]*)/g)].map(m => m[1] ?? ''))];
  const css = styles.map(f => path.join(assets, f));
  // Within :where() it takes a pseudo-class for a name that no code has, and would drop rules such as `:where(:not([data-x]))`.
  const safelist = [/^:/];
  const content = [path.join(assets, '*.js')];
  const results = await new PurgeCSS().purge({ content, css, dynamicAttributes, safelist });
  for (const { css, file } of results) if (file !== undefined) fs.writeFileSync(file, css);
}
