import { setTimeout as sleep } from 'node:timers/promises';
import { admin, startHost } from './host.ts';
import { median } from './report.ts';

/** Relationships of one entry of the outbox. */
const ENTRY = 500;
const GROUPS = 1000;
const COMPARISONS = 20;

/** What came of the comparisons, and of the rights that were taken back next to them. */
export type DriftFigures = {
  /** Relationships of the first and of the last comparison. */
  compared: [number, number];
  /** The first differences that were reported; there are none. */
  differences: string[];
  comparisonMs: number;
  revoked: number;
  /** Revocations that were answered before the graph store had them. */
  undelivered: number;
  /** Rights that the graph store still granted after it had the revocation, as its answer said. */
  late: number;
  quietMs: number;
  revokeMs: number;
  revokeMsMost: number;
};

type Relationship = { resource_type: string; resource_id: string; relation: string; subject_id: string };

/** The k-th member of the university. */
const member = (k: number): Relationship => ({
  resource_type: 'study_group',
  resource_id: `g${k % GROUPS}`,
  relation: 'member',
  subject_id: `u${k}`,
});

async function answerOf(port: number, method: string, where: string, body?: unknown): Promise<Record<string, unknown>> {
  const answer = await admin(port, method, where, body);
  const json = (await answer.json()) as Record<string, unknown>;
  if (!answer.ok) throw new Error(`${method} ${where}: ${answer.status} ${JSON.stringify(json)}`);
  return json;
}

/** Takes a right back; says how long the answer took, and whether the right is gone when the answer says so. */
async function revoke(port: number, right: Relationship): Promise<{ ms: number; delivered: boolean; late: boolean }> {
  const at = performance.now();
  const { delivered } = await answerOf(port, 'DELETE', '/relationships', right);
  const ms = performance.now() - at;
  const { resource_id, resource_type, subject_id } = right;
  const question = new URLSearchParams({ resource_type, resource_id, permission: 'view_own_data', user: subject_id });
  const { allowed } = await answerOf(port, 'GET', `/relationships/lookup?${question}`);
  return { ms, delivered: delivered === true, late: delivered === true && allowed !== false };
}

/** Compares the graph with the database again and again, while rights are taken back one after the other. */
export async function driftBesideRevocations(directory: string, relationships: number): Promise<DriftFigures> {
  const host = await startHost(directory);
  const { port } = host;
  try {
    for (let k = 0; k < relationships; k += ENTRY) {
      const some = Array.from({ length: Math.min(ENTRY, relationships - k) }, (_, n) => member(k + n));
      await answerOf(port, 'POST', '/relationships', { relationships: some });
    }
    let revoked = 0;
    const quiet: number[] = [];
    for (; revoked < 20; revoked++) quiet.push((await revoke(port, member(revoked))).ms);
    const compared: number[] = [];
    const differences: string[] = [];
    const tookMs: number[] = [];
    let done = false;
    const comparing = (async () => {
      while (tookMs.length < COMPARISONS) {
        const at = performance.now();
        const drift = await answerOf(port, 'GET', '/authz/drift');
        tookMs.push(performance.now() - at);
        compared.push(Number(drift.compared));
        for (const side of ['missing', 'extra'])
          if (Array.isArray(drift[side])) differences.push(...drift[side].slice(0, 3).map(tuple => `${side} ${tuple}`));
      }
    })().finally(() => (done = true));
    const meanwhile: Array<Awaited<ReturnType<typeof revoke>>> = [];
    while (!done) {
      meanwhile.push(await revoke(port, member(revoked++)));
      await sleep(10);
    }
    await comparing;
    return {
      compared: [compared[0] ?? 0, compared.at(-1) ?? 0],
      differences,
      comparisonMs: median(tookMs),
      revoked: meanwhile.length,
      undelivered: meanwhile.filter(r => !r.delivered).length,
      late: meanwhile.filter(r => r.late).length,
      quietMs: median(quiet),
      revokeMs: median(meanwhile.map(r => r.ms)),
      revokeMsMost: Math.max(...meanwhile.map(r => r.ms)),
    };
  } finally {
    await host.stop();
  }
}
