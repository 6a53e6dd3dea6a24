import { messageOf } from '../base/errors.ts';
import { foreignFunctions } from '../base/foreign-functions.ts';
import { setListeningOption } from './set-listening-option.ts';

/** Constants of `setsockopt` on Linux (asm-generic/socket.h). */
const SO_RCVBUF = 8;

/**
 * Bytes a connection may have waiting in the kernel; it takes twice as much, for what it needs in addition. The server reads from a socket
 * again at once, whether it was told to pause or not, for as long as a read fills its buffer of 512 KiB: with more than that waiting, one
 * fast client would hold the only thread there is for the length of its upload. What is left is a window of some hundred KiB: 10 MB/s
 * over a way of 20 ms and back.
 */
const RECEIVE_BYTES = 208 * 1024;

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
  foreignFunctions();
  return port => {
    if (process.platform !== 'linux') return `${process.platform} is not Linux`;
    try {
      const value = Buffer.alloc(4);
      value.writeInt32LE(RECEIVE_BYTES);
      return setListeningOption(port, SO_RCVBUF, value);
    } catch (error) {
      return messageOf(error);
    }
  };
}
