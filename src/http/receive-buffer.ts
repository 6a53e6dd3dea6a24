import fs from 'node:fs';
import { messageOf } from '../base/errors.ts';
import { foreignFunctions } from '../base/foreign-functions.ts';

/** Of `setsockopt` on Linux (asm-generic/socket.h). */
const SOL_SOCKET = 1;
const SO_RCVBUF = 8;
/** State of a listening socket in /proc/net/tcp. */
const LISTENS = '0A';

/**
 * Bytes a connection may have waiting in the kernel; it takes twice as much, for what it needs in addition. The server reads from a socket
 * again at once, whether it was told to pause or not, for as long as a read fills its buffer of 512 KiB: with more than that waiting, one
 * fast client would hold the only thread there is for the length of its upload. What is left is a window of some hundred KiB: 10 MB/s
 * over a way of 20 ms and back.
 */
const RECEIVE_BYTES = 208 * 1024;

/** Descriptors of this process that listen on a port. */
export function listeningOn(port: number): number[] {
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

/** Bounds what every connection to a port has waiting. @returns null when it is bounded, else why it is not */
export type LimitReceiveBuffer = (port: number) => string | null;

/**
 * How receive buffers are bounded; connections take the bound over from the socket that listens. Made before the server listens, so that a
 * missing package ends the start: without the bound one fast client holds up all others, and the installation can be mended. A system that
 * has no such call (macOS, where the service is developed and not operated) stands in the log.
 *
 * @throws OperatorError when the package that calls C functions is missing
 */
export function makeLimitReceiveBuffer(): LimitReceiveBuffer {
  const koffi = foreignFunctions();
  return port => {
    if (process.platform !== 'linux') return `${process.platform} is not Linux`;
    try {
      const setsockopt = koffi
        .load('libc.so.6')
        .func('int setsockopt(int fd, int level, int option, const void* value, uint32_t length)');
      const value = Buffer.alloc(4);
      value.writeInt32LE(RECEIVE_BYTES);
      const listening = listeningOn(port);
      if (listening.length === 0) return 'the socket that listens is not found in /proc/self';
      const refused = listening.some(fd => setsockopt(fd, SOL_SOCKET, SO_RCVBUF, value, 4) !== 0);
      return refused ? `setsockopt failed with errno ${koffi.errno()}` : null;
    } catch (error) {
      return messageOf(error);
    }
  };
}
