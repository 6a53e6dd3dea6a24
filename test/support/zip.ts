import { crc32, deflateRawSync } from 'node:zlib';

/** One entry as it is written, honest or not; what is left out is what would be right. */
export type ZipEntry = {
  name: string | Buffer;
  data?: Uint8Array;
  /** Unpacked size and checksum as they are stated. */
  size?: number;
  crc?: number;
  stored?: boolean;
  /** Bytes behind what is packed, counted as packed. */
  behind?: Uint8Array;
  method?: number;
  flags?: number;
  /** Unix mode. */
  mode?: number;
};

/** A ZIP as an attacker may make it (APPNOTE 4.3). */
export function rawZip(entries: readonly ZipEntry[]): Buffer {
  const locals: Buffer[] = [];
  const central: Buffer[] = [];
  let at = 0;
  for (const e of entries) {
    const name = Buffer.from(e.name);
    const data = e.data ?? Buffer.alloc(0);
    const body = Buffer.concat([e.stored === true ? data : deflateRawSync(data), e.behind ?? Buffer.alloc(0)]);
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(e.flags ?? 0x800, 2);
    common.writeUInt16LE(e.method ?? (e.stored === true ? 0 : 8), 4);
    common.writeUInt32LE(e.crc ?? crc32(data), 10);
    common.writeUInt32LE(body.length, 14);
    common.writeUInt32LE(e.size ?? data.length, 18);
    common.writeUInt16LE(name.length, 22);
    const local = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), common, name, body]);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE(((e.mode ?? 0o100_644) << 16) >>> 0, 6);
    tail.writeUInt32LE(at, 10);
    central.push(Buffer.concat([Buffer.from('PK\x01\x02\x14\x03', 'latin1'), common, tail, name]));
    locals.push(local);
    at += local.length;
  }
  const directory = Buffer.concat(central);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 0, 'latin1');
  end.writeUInt16LE(Math.min(entries.length, 0xffff), 8);
  end.writeUInt16LE(Math.min(entries.length, 0xffff), 10);
  end.writeUInt32LE(directory.length, 12);
  end.writeUInt32LE(at, 16);
  return Buffer.concat([...locals, directory, end]);
}
