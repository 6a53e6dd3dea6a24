import fs from 'node:fs';
import { foreignFunctions } from '../../src/base/foreign-functions.ts';

/** Of `socket` and `recv` on Linux. */
const AF_UNIX = 1;
const SOCK_DGRAM = 2;
const SOCK_CLOEXEC = 0o2000000;
const MSG_DONTWAIT = 0x40;
const LOOK_MS = 20;

/** What systemd holds at the other end of `NOTIFY_SOCKET`. */
export type NotifySocket = { path: string; messages: string[]; close(): void };

/** Opens a datagram socket and collects what is sent to it. @param path of a file, or an abstract name behind @ */
export function openNotifySocket(path: string): NotifySocket {
  const koffi = foreignFunctions();
  const libc = koffi.load('libc.so.6');
  const fd: number = libc.func('int socket(int domain, int type, int protocol)')(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const name = path.startsWith('@') ? `\0${path.slice(1)}` : `${path}\0`;
  const address = Buffer.alloc(2 + Buffer.byteLength(name));
  address.writeUInt16LE(AF_UNIX);
  address.write(name, 2);
  const bind = libc.func('int bind(int fd, const void* address, uint32_t length)');
  if (bind(fd, address, address.length) !== 0) throw new Error(`bind failed with errno ${koffi.errno()}`);
  const recv = libc.func('long recv(int fd, void* to, size_t length, int flags)');
  const messages: string[] = [];
  const to = Buffer.alloc(4096);
  const timer = setInterval(() => {
    for (let n = recv(fd, to, to.length, MSG_DONTWAIT); n >= 0; n = recv(fd, to, to.length, MSG_DONTWAIT))
      messages.push(to.toString('utf8', 0, n));
  }, LOOK_MS);
  return {
    path,
    messages,
    close() {
      clearInterval(timer);
      fs.closeSync(fd);
    },
  };
}
