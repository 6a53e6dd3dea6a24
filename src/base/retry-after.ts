/** `Sun Nov  6 08:49:37 1994`, the one form of a date that does not say GMT. */
const ASCTIME = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}$/;

/**
 * The wait that `Retry-After` asks for: seconds, or a date in any of the three forms of HTTP (RFC 9110 sections 5.6.7 and 10.2.3).
 *
 * @param now by `Date.now()`
 * @returns milliseconds, 0 for a date that has passed; null when there is none or it cannot be read
 */
export function retryAfterMs(value: string | null | undefined, now: number): number | null {
  const text = value?.trim() ?? '';
  if (/^\d{1,10}$/.test(text)) return Number(text) * 1000;
  // Dates begin with the name of a day; the platform reads many other texts as dates of its own.
  if (!/^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(text)) return null;
  const at = Date.parse(ASCTIME.test(text) ? `${text} GMT` : text);
  return Number.isNaN(at) ? null : Math.max(0, at - now);
}
