/** Who calls a plugin (docs/access.md "Principals"). Null stands for a caller without a credential. */
export type Principal = UserPrincipal | ServicePrincipal;
export type UserPrincipal = { readonly kind: 'user'; readonly userId: number };
export type ServicePrincipal = { readonly kind: 'service'; readonly keyId: number };

/** The principal as a plugin sees it in `ctx.HTTP.Auth`. */
export type HttpAuth = { kind: 'user'; user_id: number } | { kind: 'service'; service_key_id: number };

export function authOf(p: Principal | null): HttpAuth | null {
  if (p === null) return null;
  return p.kind === 'user' ? { kind: 'user', user_id: p.userId } : { kind: 'service', service_key_id: p.keyId };
}

/** The principal as records, commands and answers name it: `user:<id>`, `service:<id>` or `public`. */
export function principalText(p: Principal | null): string {
  if (p === null) return 'public';
  return p.kind === 'user' ? userText(p.userId) : `service:${p.keyId}`;
}

export const userText = (userId: number): string => `user:${userId}`;

/** @returns undefined for a text that names no principal, such as that of an erased one */
export function readPrincipal(text: string): Principal | null | undefined {
  if (text === 'public') return null;
  const [, kind, number] = /^(user|service):([1-9]\d{0,14})$/.exec(text) ?? [];
  if (number === undefined) return undefined;
  return kind === 'user' ? { kind, userId: Number(number) } : { kind: 'service', keyId: Number(number) };
}
