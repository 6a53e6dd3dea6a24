/** Bounds of the second factor (docs/identity.md "Second factor"). */
export const SECOND_FACTOR_LIMITS = {
  /** The second half of a login or of an enrolment must follow within this time. */
  challengeSeconds: 300,
  /** How many wrong answers end a challenge. */
  challengeFailuresMax: 5,
  /** After that many wrong codes for an account within fifteen minutes, codes of the app are refused. */
  wrongCodesMax: 20,
  /** Questions of one kind that wait for an account; older ones are void. */
  challengesMax: 10,
  passkeysMax: 20,
  recoveryCodes: 10,
} as const;
