/** Reads the values of DWARF sections (DWARF 4, section 7): little-endian, 32-bit. */
export class DebugReader {
  readonly bytes: Uint8Array;
  readonly #view: DataView;
  at: number;

  constructor(bytes: Uint8Array, at = 0) {
    this.bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    this.at = at;
  }

  get isAtEnd(): boolean {
    return this.at >= this.bytes.length;
  }

  u8(): number {
    return this.#view.getUint8(this.at++);
  }

  i8(): number {
    return this.#view.getInt8(this.at++);
  }

  u16(): number {
    this.at += 2;
    return this.#view.getUint16(this.at - 2, true);
  }

  u32(): number {
    this.at += 4;
    return this.#view.getUint32(this.at - 4, true);
  }

  unsigned(): number {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = this.u8();
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  }

  signed(): number {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = this.u8();
      value += (byte & 127) * scale;
      if (byte < 128) return (byte & 64) === 0 ? value : value - scale * 128;
    }
  }

  /** Text up to a NUL. */
  text(): string {
    const end = this.bytes.indexOf(0, this.at);
    if (end < 0) throw new RangeError('a text of the debug information has no end');
    const text = Buffer.from(this.bytes.buffer, this.bytes.byteOffset + this.at, end - this.at).toString();
    this.at = end + 1;
    return text;
  }
}
