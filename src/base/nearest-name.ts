/** Changes of one character that turn one name into another, at most `max`; beyond that the answer is `max + 1`. */
function distance(a: string, b: string, max: number): number {
  if (Math.abs(a.length - b.length) > max) return max + 1;
  let row = Array.from({ length: b.length + 1 }, (_, k) => k);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let k = 1; k <= b.length; k++)
      next.push(
        Math.min((row[k] ?? 0) + 1, (next[k - 1] ?? 0) + 1, (row[k - 1] ?? 0) + (a[i - 1] === b[k - 1] ? 0 : 1)),
      );
    row = next;
  }
  return row[b.length] ?? max + 1;
}

/** Names compared for one suggestion; a longer list is cut. */
const COMPARED_MAX = 2000;

/**
 * The known name that was probably meant.
 *
 * @returns null when no known name is close: a third of the characters may differ, at least two and at most four
 */
export function nearestName(name: string, known: Iterable<string>): string | null {
  const wanted = name.slice(0, 100).toLowerCase();
  let best: string | null = null;
  let bestDistance = Math.min(4, Math.max(2, Math.ceil(wanted.length / 3))) + 1;
  let compared = 0;
  for (const candidate of known) {
    if (++compared > COMPARED_MAX) break;
    const d = distance(wanted, candidate.slice(0, 100).toLowerCase(), bestDistance - 1);
    // A name that shares nothing with the given one is not suggested.
    if (d < bestDistance && d < Math.max(wanted.length, candidate.length)) [best, bestDistance] = [candidate, d];
  }
  return best;
}

/** `; did you mean "tutor"?`, or nothing when no known name is close. */
export function didYouMean(name: string, known: Iterable<string>): string {
  const nearest = nearestName(name, known);
  return nearest === null ? '' : `; did you mean "${nearest}"?`;
}
