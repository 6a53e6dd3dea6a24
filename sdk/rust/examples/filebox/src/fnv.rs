pub const START: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x100_0000_01b3;

/// Carries on FNV-1a over words of 64 bits, and over the bytes behind the last whole word.
pub fn carry_on(start: u64, chunk: &[u8]) -> u64 {
    let mix = |state: u64, value: u64| (state ^ value).wrapping_mul(PRIME);
    let words = chunk.chunks_exact(8);
    let rest = words.remainder();
    let state = words.fold(start, |state, word| mix(state, u64::from_le_bytes(word.try_into().unwrap_or_default())));
    rest.iter().fold(state, |state, byte| mix(state, u64::from(*byte)))
}
