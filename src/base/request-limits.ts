/** Limits of HTTP requests; those an operator may change are configuration (`http.*`). */

const KIB = 1024;
const MIB = 1024 * KIB;

export const REQUEST_LIMITS = {
  /** Body of an admin request that is JSON. */
  adminBodyBytesMax: 1 * MIB,
  /** Body of a request that needs no credential: login, setup, identity provider. */
  openBodyBytesMax: 8 * KIB,
  /** Body of a messenger's webhook call, which may contain the secret that authenticates it. */
  webhookBodyBytesMax: 256 * KIB,

  /** A body of up to this size is kept in memory, a larger one in a file. */
  bodyMemoryBytesMax: 256 * KIB,
  /** A body up to this size that arrives in one piece does not count towards the bodies being received. */
  bodyInlineBytesMax: 64 * KIB,
  /** For this time a body may arrive at any speed. */
  bodyGraceMs: 6000,

  /** What clients have not taken yet of the answers of a serving process, and from which size on an answer counts. */
  waitingAnswersBytesMax: 256 * MIB,
  answerInlineBytesMax: 64 * KIB,

  /** Nesting of JSON from outside, and its keys and elements in all. */
  jsonDepthMax: 64,
  jsonKeysMax: 10_000,
  jsonElementsMax: 100_000,
  /** JSON larger than this is parsed in a separate thread, and this many bodies may wait for that thread. */
  jsonInlineBytesMax: 64 * KIB,
  jsonBodiesWaitingMax: 64,

  /** Mistakes named in one refusal, and characters of each text. */
  errorsToldMax: 20,
  errorTextCharsMax: 300,
  errorDetailCharsMax: 2000,
} as const;
