import dgram from 'node:dgram';

/** Answers by name; a list per question when the answers are to change. */
export type Names = Record<string, string[] | (() => string[])>;

/** A name server that knows a few names (RFC 1035 section 4): A records over UDP, everything else is an empty answer. */
export async function startNameServer(
  names: Names,
): Promise<{ address: string; asked: string[]; close(): Promise<void> }> {
  const socket = dgram.createSocket('udp4');
  const asked: string[] = [];
  socket.on('message', (query, from) => {
    const labels: string[] = [];
    let at = 12;
    while (query[at] !== 0 && at < query.length) {
      const length = query[at] ?? 0;
      labels.push(query.toString('latin1', at + 1, at + 1 + length));
      at += length + 1;
    }
    const end = at + 5;
    const type = query.readUInt16BE(at + 1);
    const name = labels.join('.').toLowerCase();
    const entry = names[name];
    const addresses = type !== 1 || entry === undefined ? [] : typeof entry === 'function' ? entry() : entry;
    if (type === 1) asked.push(name);
    const head = Buffer.alloc(12);
    query.copy(head, 0, 0, 2);
    // An answer with recursion; 3 is "no such name".
    head.writeUInt16BE(0x8180 | (entry === undefined ? 3 : 0), 2);
    head.writeUInt16BE(1, 4);
    head.writeUInt16BE(addresses.length, 6);
    const records = addresses.map(a => {
      const record = Buffer.alloc(16);
      record.writeUInt16BE(0xc00c, 0);
      record.writeUInt16BE(1, 2);
      record.writeUInt16BE(1, 4);
      record.writeUInt32BE(0, 6);
      record.writeUInt16BE(4, 10);
      Buffer.from(a.split('.').map(Number)).copy(record, 12);
      return record;
    });
    socket.send(Buffer.concat([head, query.subarray(12, end), ...records]), from.port, from.address);
  });
  await new Promise<void>(resolve => socket.bind(0, '127.0.0.1', resolve));
  return {
    address: `127.0.0.1:${socket.address().port}`,
    asked,
    close: () => new Promise(resolve => socket.close(() => resolve())),
  };
}
