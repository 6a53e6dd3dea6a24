import { createRequire } from 'node:module';
import type koffi from 'koffi';
import { messageOf, OperatorError } from './errors.ts';
import { pinnedVersion } from './optional-package.ts';

const require = createRequire(import.meta.url);

/**
 * The package that calls functions of C libraries: for the bound on receive buffers, the lock of the data directory and the embedded
 * SpiceDB. Its binary is a package of its own for each platform, which npm leaves out with all optional packages, so both may be missing.
 *
 * @throws OperatorError that says what to install
 */
export function foreignFunctions(): typeof koffi {
  try {
    return require('koffi');
  } catch (cause) {
    const isMissing = cause instanceof Error && 'code' in cause && cause.code === 'MODULE_NOT_FOUND';
    const version = pinnedVersion('koffi');
    throw new OperatorError(
      isMissing
        ? `the package koffi is not installed, which the bound on receive buffers needs: run npm install koffi@${version}`
        : `the package koffi cannot load its binary, which the bound on receive buffers needs (${messageOf(cause).split('\n')[0]}): run npm install --no-save --omit=dev --omit=optional @koromix/koffi-${process.platform}-${process.arch}@${version}`,
      { cause },
    );
  }
}
