import fs from 'node:fs';
import { foreignFunctions } from '../base/foreign-functions.ts';

/** Constants of `setsockopt` on Linux (asm-generic/socket.h). */
const SOL_SOCKET = 1;
/** State of a listening socket in /proc/net/tcp. */
const LISTENS = '0A';

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
 * Sets an option of the sockets of this process that listen on a port (socket(7)). Linux alone.
 *
 * @returns null when it is set, else why it is not
 * @throws Error when the C library cannot be called
 */
export function setListeningOption(port: number, option: number, value: Buffer): string | null {
  const koffi = foreignFunctions();
  const setsockopt = koffi
    .load('libc.so.6')
    .func('int setsockopt(int fd, int level, int option, const void* value, uint32_t length)');
  const listening = listeningOn(port);
  if (listening.length === 0) return 'the socket that listens is not found in /proc/self';
  const refused = listening.some(fd => setsockopt(fd, SOL_SOCKET, option, value, value.length) !== 0);
  return refused ? `setsockopt failed with errno ${koffi.errno()}` : null;
}
