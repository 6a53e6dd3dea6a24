import { ServiceError } from '../base/errors.ts';
import type { TrustedKey } from '../config/trusted-key.ts';
import { type SignatureState, signsFrontend } from './module-signature.ts';
import type { FrontendInfo } from './plugin-store.ts';

/**
 * Where `plugins.require_signature` is set: a version must be signed by a key of the configuration, with its frontend if
 * it has one.
 *
 * @throws ServiceError `validation_failed` with what is wrong and which keys count
 */
export function requireTrusted(
  signature: SignatureState,
  frontend: FrontendInfo | null,
  trustedKeys: readonly TrustedKey[],
): void {
  const { keyId, state } = signature;
  if (state === 'trusted' && (frontend === null || signsFrontend(signature, frontend.sha256))) return;
  const why = {
    trusted: 'has a frontend that its signature does not name; sign the module with --frontend FILE.zip',
    none: 'is not signed',
    unknown: `is signed by the key ${keyId}, which is none of plugins.trusted_keys`,
    wrong: `has a signature of the key ${keyId} that is not right`,
  }[state];
  const names = trustedKeys.map(k => k.name).join(', ') || 'none';
  const message =
    state === 'trusted'
      ? 'must be a version that is signed together with its frontend'
      : `must be a version that is signed by one of: ${names}`;
  throw new ServiceError(
    'validation_failed',
    `this version ${why}; plugins.require_signature asks for one of: ${names}`,
    { errors: [{ pointer: '/wasm_key', message, code: 'not_accepted' }] },
  );
}
