/** So many characters of a text are looked for; where they stand, what follows is taken for the rest of it. */
const PREFIX_CHARACTERS = 64;

/** Part of a text, from its first character to behind its last, and the index of the first text that was found in it. */
export type Found = { from: number; to: number; index: number };

/**
 * Finds any of many texts in one pass, whose time grows with the length of what is searched alone, whatever the texts are
 * (A. Aho, M. Corasick, "Efficient String Matching", 1975). A pattern of alternatives has no such bound.
 */
export class TextFinder {
  /** Node behind a node and a character. */
  readonly #next = new Map<number, number>();
  /** For each node that of its longest end with which a text begins, too. */
  readonly #fallback: number[] = [0];
  /** For each node the longest text that ends there: what of it was looked for, all of it, and its index. */
  readonly #ends: Array<{ sought: number; length: number; index: number } | null> = [null];

  /** @param texts none of them empty */
  constructor(texts: readonly string[]) {
    const children: number[][] = [[]];
    const characters = [0];
    for (const [index, text] of texts.entries()) {
      const sought = Math.min(text.length, PREFIX_CHARACTERS);
      let node = 0;
      for (let k = 0; k < sought; k++) {
        const character = text.charCodeAt(k);
        let to = this.#next.get(node * 65_536 + character);
        if (to === undefined) {
          to = children.length;
          this.#next.set(node * 65_536 + character, to);
          children[node]?.push(to);
          children.push([]);
          characters.push(character);
          this.#fallback.push(0);
          this.#ends.push(null);
        }
        node = to;
      }
      const length = Math.max(text.length, this.#ends[node]?.length ?? 0);
      this.#ends[node] = { sought, length, index: this.#ends[node]?.index ?? index };
    }
    // Nodes in the order of their depth: a fallback is less deep.
    for (let level = children[0] ?? []; level.length > 0; level = level.flatMap(node => children[node] ?? []))
      for (const parent of level)
        for (const node of children[parent] ?? []) {
          const fallback = this.#step(this.#fallback[parent] ?? 0, characters[node] ?? 0);
          this.#fallback[node] = fallback;
          this.#ends[node] ??= this.#ends[fallback] ?? null;
        }
  }

  #step(from: number, character: number): number {
    for (let node = from; ; node = this.#fallback[node] ?? 0) {
      const to = this.#next.get(node * 65_536 + character);
      if (to !== undefined) return to;
      if (node === 0) return 0;
    }
  }

  /** @returns the parts in which texts stand, from the left; those that overlap are one part */
  find(text: string): Found[] {
    const found: Found[] = [];
    let node = 0;
    for (let k = 0; k < text.length; k++) {
      node = this.#step(node, text.charCodeAt(k));
      const end = this.#ends[node];
      if (end == null) continue;
      let { index } = end;
      let from = k + 1 - end.sought;
      let to = Math.min(text.length, from + end.length);
      for (let last = found.at(-1); last !== undefined && from < last.to; last = found.at(-1)) {
        found.pop();
        if (last.from <= from) index = last.index;
        from = Math.min(from, last.from);
        to = Math.max(to, last.to);
      }
      found.push({ from, to, index });
    }
    return found;
  }

  has(text: string): boolean {
    let node = 0;
    for (let k = 0; k < text.length; k++) {
      node = this.#step(node, text.charCodeAt(k));
      if (this.#ends[node] != null) return true;
    }
    return false;
  }
}
