/** Limits of what comes in over HTTP; those an operator may move are configuration (`http.*`). */

const KIB = 1024;
const MIB = 1024 * KIB;

export const REQUEST_LIMITS = {
  /** Body of an admin request that is JSON. */
  adminBodyBytesMax: 1 * MIB,
  /** Body of a request that needs no credential: login, setup, identity provider. */
  openBodyBytesMax: 8 * KIB,
  /** Body of a call of a messenger, whose secret may stand in it. */
  webhookBodyBytesMax: 256 * KIB,

  /** A body is kept in memory up to here, and in a file beyond. */
  bodyMemoryBytesMax: 256 * KIB,
  /** One that comes at once and is no larger is not counted among those that are received. */
  bodyInlineBytesMax: 64 * KIB,
  /** A body may come as slowly as it likes for so long. */
  bodyGraceMs: 6000,

  /** What JSON from outside may hold: levels within each other, keys and elements in all. */
  jsonDepthMax: 64,
  jsonKeysMax: 10_000,
  jsonElementsMax: 100_000,
  /** JSON beyond it is read in a thread of its own, and that many bodies wait for it. */
  jsonInlineBytesMax: 64 * KIB,
  jsonBodiesWaitingMax: 64,

  /** Places told in one refusal, and characters of each text in it. */
  errorsToldMax: 20,
  errorTextCharsMax: 300,
  errorDetailCharsMax: 2000,
} as const;
