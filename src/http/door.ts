import type { AnswerCounts } from './answer-counts.ts';

/** What all exchanges of a server have in common, and what may change while it runs. */
export type Door = {
  /** Whether connections are closed behind their answers, because another process takes their clients from now on. */
  isClosing: boolean;
  /** Lines of the head behind the request id, which comes last. */
  readonly after: string;
  /** Counts answers; null when no program reads the counts. */
  readonly counts: AnswerCounts | null;
};
