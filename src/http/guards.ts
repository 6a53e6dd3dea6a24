import { createHash, timingSafeEqual } from 'node:crypto';
import type { Guard } from '../api/route.ts';
import { ServiceError } from '../errors.ts';
import type { Request } from '../message.ts';

export type SetupAccess = { mode: 'token' | 'loopback' | 'open'; token: string };

const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest();

export function isLoopback(address: string): boolean {
  return /^127\./.test(address) || address === '0000:0000:0000:0000:0000:0000:0000:0001' || address === '::1';
}

/** The bearer token of a request, or null. */
export function bearerOf(request: Request): string | null {
  return /^Bearer +(\S+) *$/i.exec(request.headers.authorization ?? '')?.[1] ?? null;
}

/** @throws ServiceError `unauthorized` when the guard does not let the request in */
export function checkGuard(guard: Guard, request: Request, setup: SetupAccess): void {
  if (guard === 'none' || setup.mode === 'open') return;
  if (setup.mode === 'loopback') {
    if (isLoopback(request.remoteAddr)) return;
    throw new ServiceError('unauthorized', 'the admin API is open to loopback addresses only (admin.setup: loopback)');
  }
  const given = bearerOf(request);
  // Hashes have one length, so the comparison takes the same time whatever was sent.
  if (given !== null && timingSafeEqual(sha256(given), sha256(setup.token))) return;
  throw new ServiceError(
    'unauthorized',
    given === null
      ? 'send the setup token as "Authorization: Bearer <token>"; it is printed when the service starts'
      : 'this is not the setup token',
    {
      headers: [['WWW-Authenticate', 'Bearer realm="plugin-host admin"']],
    },
  );
}
