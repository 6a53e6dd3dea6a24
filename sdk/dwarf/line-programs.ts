import path from 'node:path';
import { DebugReader } from './debug-reader.ts';

/** Reads `.debug_line` (DWARF 2 to 4, section 6.2): which line each instruction comes from. */

export type LineRow = { address: number; file: string; line: number };

/** Rows without a gap in order of their addresses; they count up to `end`. */
export type LineSequence = { rows: LineRow[]; end: number };

export type LineProgram = {
  /** Paths of the sources by the numbers that DWARF gives them; they begin with 1. */
  files: string[];
  sequences: LineSequence[];
};

type Header = {
  /** Offset behind the program. */
  end: number;
  instructionBytes: number;
  lineBase: number;
  lineRange: number;
  opcodeBase: number;
  lengths: number[];
  files: string[];
};

const OLDEST = 2;
const NEWEST = 4;

function readHeader(r: DebugReader): Header | null {
  const length = r.u32();
  const end = r.at + length;
  const version = r.u16();
  if (version < OLDEST || version > NEWEST) {
    r.at = end;
    return null;
  }
  const headerLength = r.u32();
  const programAt = r.at + headerLength;
  const instructionBytes = r.u8();
  if (version >= 4) r.u8();
  r.u8();
  const lineBase = r.i8();
  const lineRange = r.u8();
  const opcodeBase = r.u8();
  const lengths = Array.from({ length: opcodeBase - 1 }, () => r.u8());
  const directories: string[] = [''];
  for (let text = r.text(); text !== ''; text = r.text()) directories.push(text);
  const files: string[] = [''];
  for (let text = r.text(); text !== ''; text = r.text()) {
    const directory = directories[r.unsigned()] ?? '';
    files.push(path.posix.isAbsolute(text) ? text : path.posix.join(directory, text));
    // When it was changed, and its size.
    r.unsigned();
    r.unsigned();
  }
  r.at = programAt;
  return { end, instructionBytes, lineBase, lineRange, opcodeBase, lengths, files };
}

/** The machine that a line program runs on. */
class LineMachine {
  readonly #header: Header;
  readonly sequences: LineSequence[] = [];
  #rows: LineRow[] = [];
  #address = 0;
  #file = 1;
  #line = 1;

  constructor(header: Header) {
    this.#header = header;
  }

  #addRow(): void {
    const row = { address: this.#address, file: this.#header.files[this.#file] ?? '', line: this.#line };
    // Of two rows at one address the last one counts.
    if (this.#rows.at(-1)?.address === row.address) this.#rows.pop();
    this.#rows.push(row);
  }

  #advance(operation: number): void {
    this.#address += operation * this.#header.instructionBytes;
  }

  #endSequence(): void {
    if (this.#rows.length > 0) this.sequences.push({ rows: this.#rows, end: this.#address });
    this.#rows = [];
    [this.#address, this.#file, this.#line] = [0, 1, 1];
  }

  #extended(r: DebugReader): void {
    const length = r.unsigned();
    const end = r.at + length;
    switch (r.u8()) {
      case 1:
        this.#endSequence();
        break;
      case 2:
        this.#address = r.u32();
        break;
    }
    r.at = end;
  }

  /** Runs one instruction. */
  step(r: DebugReader): void {
    const { lengths, lineBase, lineRange, opcodeBase } = this.#header;
    const opcode = r.u8();
    if (opcode >= opcodeBase) {
      const adjusted = opcode - opcodeBase;
      this.#advance(Math.floor(adjusted / lineRange));
      this.#line += lineBase + (adjusted % lineRange);
      return this.#addRow();
    }
    switch (opcode) {
      case 0:
        return this.#extended(r);
      case 1:
        return this.#addRow();
      case 2:
        return this.#advance(r.unsigned());
      case 3:
        this.#line += r.signed();
        return;
      case 4:
        this.#file = r.unsigned();
        return;
      case 8:
        return this.#advance(Math.floor((255 - opcodeBase) / lineRange));
      case 9:
        this.#address += r.u16();
        return;
      default:
        // Columns, statements, prologues: of no interest here.
        for (let k = lengths[opcode - 1] ?? 0; k > 0; k--) r.unsigned();
    }
  }
}

/** @returns the programs by their offsets, which compilation units name; those of other versions are left out */
export function readLinePrograms(section: Uint8Array): Map<number, LineProgram> {
  const programs = new Map<number, LineProgram>();
  const r = new DebugReader(section);
  while (!r.isAtEnd) {
    const offset = r.at;
    const header = readHeader(r);
    if (header === null) continue;
    const machine = new LineMachine(header);
    while (r.at < header.end) machine.step(r);
    programs.set(offset, { files: header.files, sequences: machine.sequences });
  }
  return programs;
}
