import { foreignFunctions } from '../base/foreign-functions.ts';
import { setListeningOption } from './set-listening-option.ts';

/** Constants of `setsockopt` on Linux (asm-generic/socket.h). */
const SO_ATTACH_REUSEPORT_CBPF = 51;

/** An instruction of classic BPF (linux/filter.h): code, jumps when true and false, operand. */
type Instruction = readonly [code: number, whenTrue: number, whenFalse: number, operand: number];

/** BPF_RET | BPF_K, BPF_RET | BPF_A. */
const returnConstant = (k: number): Instruction => [0x06, 0, 0, k];
const RETURN_ACCUMULATOR: Instruction = [0x16, 0, 0, 0];
/** BPF_LD | BPF_W | BPF_ABS at SKF_AD_OFF + SKF_AD_RANDOM: a random number of 32 bits. */
const LOAD_RANDOM: Instruction = [0x20, 0, 0, 0xffff_f000 + 56];
/** BPF_JMP | BPF_JGE | BPF_K: skips `whenTrue` instructions if the accumulator is at least that large. */
const jumpIfAtLeast = (k: number, whenTrue: number): Instruction => [0x35, whenTrue, 0, k];
/** BPF_ALU | BPF_MOD | BPF_K. */
const modulo = (k: number): Instruction => [0x94, 0, 0, k];
const INSTRUCTION_BYTES = 8;

/**
 * Leads new connections of a port to one of the sockets that listen on it (socket(7), SO_REUSEPORT). A number without a
 * socket leaves the choice to the kernel, which spreads connections over all sockets.
 *
 * @param port on which a socket of this process listens
 * @param index which socket, in the order in which they began to listen; when one closes, the last takes its number
 * @param share of the connections that go there; the others go to the sockets before it
 * @returns whether the system does it
 */
export function steerConnections(port: number, index: number, share = 1): boolean {
  if (process.platform !== 'linux') return false;
  try {
    return attach(port, programOf(index, share));
  } catch {
    // Another C library than the expected one: the kernel spreads connections as it does anyway.
    return false;
  }
}

function programOf(index: number, share: number): Instruction[] {
  if (share >= 1 || index === 0) return [returnConstant(index)];
  return [
    LOAD_RANDOM,
    jumpIfAtLeast(Math.floor(share * 2 ** 32), 1),
    returnConstant(index),
    LOAD_RANDOM,
    modulo(index),
    RETURN_ACCUMULATOR,
  ];
}

function attach(port: number, instructions: readonly Instruction[]): boolean {
  const code = Buffer.alloc(INSTRUCTION_BYTES * instructions.length);
  for (const [k, [operation, whenTrue, whenFalse, operand]] of instructions.entries()) {
    const at = k * INSTRUCTION_BYTES;
    code.writeUInt16LE(operation, at);
    code.writeUInt8(whenTrue, at + 2);
    code.writeUInt8(whenFalse, at + 3);
    code.writeUInt32LE(operand, at + 4);
  }
  // struct sock_fprog: number of instructions, then their address.
  const program = Buffer.alloc(16);
  program.writeUInt16LE(instructions.length, 0);
  program.writeBigUInt64LE(foreignFunctions().address(code), 8);
  return setListeningOption(port, SO_ATTACH_REUSEPORT_CBPF, program) === null;
}
