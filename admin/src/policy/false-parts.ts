/** A part of a policy with its value, as a trial tells it. */
export type PolicyPart = {
  expression: string;
  position: { start: number; end: number };
  value?: unknown;
  error?: string | undefined;
  not_needed?: true | undefined;
};

type Range = PolicyPart['position'];

const isInside = (inner: Range, outer: Range): boolean =>
  outer.start <= inner.start && inner.end <= outer.end && outer.end - outer.start > inner.end - inner.start;

/**
 * The parts of a policy that make it false: the innermost false ones, without those inside a part that is true, which decide nothing.
 *
 * @param parts every part
 */
export function falsePartsOf(parts: readonly PolicyPart[]): PolicyPart[] {
  const places = (value: boolean): Range[] => parts.filter(p => p.value === value).map(p => p.position);
  const [holding, failing] = [places(true), places(false)];
  const decides = (at: Range): boolean => !holding.some(outer => isInside(at, outer));
  const deciding = failing.filter(decides);
  return parts.filter(
    p => p.value === false && decides(p.position) && !deciding.some(inner => isInside(inner, p.position)),
  );
}
