import type { Schemas } from './client.ts';

/** The library of the browser's side, loaded when a passkey is made or used. */
const library = () => import('@simplewebauthn/browser');

/** Whether this browser knows passkeys here. */
export const knowsPasskeys = (): boolean => 'credentials' in navigator && 'PublicKeyCredential' in window;

/** Asks the browser to make a passkey. @throws when it is cancelled, or the authenticator has one already */
export async function makePasskey(options: Schemas['PasskeyCreationOptions']) {
  const { startRegistration } = await library();
  const { authenticatorAttachment, id, rawId, response, type } = await startRegistration({ optionsJSON: options });
  return { authenticatorAttachment, id, rawId, response, type };
}

/** Asks the browser to sign with one of the passkeys. @throws when it is cancelled */
export async function signWithPasskey(options: Schemas['PasskeyUseOptions']) {
  const { startAuthentication } = await library();
  const { authenticatorAttachment, id, rawId, response, type } = await startAuthentication({ optionsJSON: options });
  return { authenticatorAttachment, id, rawId, response, type };
}

/** Whether an error says that the person, or a deadline, broke it off. */
export const isBrokenOff = (error: unknown): boolean =>
  error instanceof Error && (error.name === 'NotAllowedError' || error.name === 'AbortError');
