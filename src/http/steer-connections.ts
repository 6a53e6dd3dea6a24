import { foreignFunctions } from '../base/foreign-functions.ts';
import { setListeningOption } from './set-listening-option.ts';

/** Of `setsockopt` on Linux (asm-generic/socket.h). */
const SO_ATTACH_REUSEPORT_CBPF = 51;
/** Return a constant: BPF_RET | BPF_K (linux/bpf_common.h). */
const BPF_RETURN = 0x06;
const INSTRUCTION_BYTES = 8;

/**
 * Leads all new connections of a port to one of the sockets that listen on it (socket(7), SO_REUSEPORT). A number
 * without a socket leaves the choice to the kernel, which spreads connections over all sockets.
 *
 * @param port on which a socket of this process listens
 * @param index which socket, in the order in which they began to listen; when one closes, the last takes its number
 * @returns whether the system does it
 */
export function steerConnections(port: number, index: number): boolean {
  if (process.platform !== 'linux') return false;
  try {
    return attach(port, index);
  } catch {
    // Another C library than the expected one: the kernel spreads connections as it does anyway.
    return false;
  }
}

function attach(port: number, index: number): boolean {
  const instruction = Buffer.alloc(INSTRUCTION_BYTES);
  instruction.writeUInt16LE(BPF_RETURN, 0);
  instruction.writeUInt32LE(index, 4);
  // struct sock_fprog: number of instructions, then their address.
  const program = Buffer.alloc(16);
  program.writeUInt16LE(1, 0);
  program.writeBigUInt64LE(foreignFunctions().address(instruction), 8);
  return setListeningOption(port, SO_ATTACH_REUSEPORT_CBPF, program) === null;
}
