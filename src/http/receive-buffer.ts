import fs from 'node:fs';
import koffi from 'koffi';

/** Of `setsockopt` on Linux (asm-generic/socket.h). */
const SOL_SOCKET = 1;
const SO_RCVBUF = 8;
/** State of a listening socket in /proc/net/tcp. */
const LISTENS = '0A';

/**
 * Bytes a connection may have waiting in the kernel; it takes twice as much, for what it needs beside them. The server reads from a socket
 * again at once, whether it was told to pause or not, for as long as a read fills its buffer of 512 KiB: with more than that waiting, one
 * fast client would hold the only thread there is for the length of its upload. What is left is a window of some hundred KiB: 10 MB/s
 * over a way of 20 ms and back.
 */
const RECEIVE_BYTES = 208 * 1024;

/** Descriptors of this process that listen on a port. */
function listeningOn(port: number): number[] {
  const wanted = port.toString(16).toUpperCase().padStart(4, '0');
  const inodes = new Set<string>();
  for (const table of ['/proc/self/net/tcp', '/proc/self/net/tcp6'])
    for (const line of fs.existsSync(table) ? fs.readFileSync(table, 'utf8').split('\n').slice(1) : []) {
      const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/);
      if (state === LISTENS && local.endsWith(`:${wanted}`)) inodes.add(`socket:[${inode}]`);
    }
  return fs.readdirSync('/proc/self/fd').flatMap(fd => {
    try {
      return inodes.has(fs.readlinkSync(`/proc/self/fd/${fd}`)) ? [Number(fd)] : [];
    } catch {
      // The directory's own descriptor is closed by now.
      return [];
    }
  });
}

/**
 * Bounds what every connection to a port has waiting; connections take it over from the socket that listens.
 *
 * @returns whether it could be done: the server works without, but one client may hold it up
 */
export function limitReceiveBuffer(port: number): boolean {
  if (process.platform !== 'linux') return false;
  try {
    const setsockopt = koffi
      .load('libc.so.6')
      .func('int setsockopt(int fd, int level, int option, const void* value, uint32_t length)');
    const value = Buffer.alloc(4);
    value.writeInt32LE(RECEIVE_BYTES);
    const listening = listeningOn(port);
    return listening.length > 0 && listening.every(fd => setsockopt(fd, SOL_SOCKET, SO_RCVBUF, value, 4) === 0);
  } catch {
    return false;
  }
}
