import type { Account } from './caller.ts';
import { closedLoop, openLoop } from './load.ts';
import { add, median } from './report.ts';
import { GREET } from './throughput.ts';

/** What it costs to know who calls, and what logins cost the others. */
export async function identity(
  port: number,
  { account, bearer, post }: Account,
  rounds: number,
  seconds: number,
): Promise<void> {
  const allow = async (on: boolean): Promise<void> => {
    const settings = { allow_user_session: on, accept_public: true };
    const r = await post('/api/admin/plugins/hello/triggers/greet/settings', settings, 'PUT');
    if (r.status !== 200) throw new Error(await r.text());
  };
  const ratios: number[] = [];
  let failed = 0;
  for (let k = 0; k < rounds; k++) {
    await allow(false);
    const open = await closedLoop(port, GREET, 64, seconds);
    await allow(true);
    const withToken = await closedLoop(port, GREET, 64, seconds, bearer);
    failed += withToken.failed;
    ratios.push(withToken.perSecond / open.perSecond);
  }
  await allow(false);
  add('with user token / public', `${median(ratios).toFixed(2)}`, { atLeast: 0.95, aim: 1, also: `failed ${failed}` });

  const tails: number[] = [];
  let logins = 0;
  for (let k = 0; k < rounds; k++) {
    const quiet = await openLoop(port, GREET, 500, seconds);
    let on = true;
    const client = async (): Promise<void> => {
      while (on) if ((await post('/api/admin/auth/login', account)).status === 200) logins++;
    };
    // As many as one caller may have compared at a time; a fourth would be answered 429 at once, again and again.
    const clients = Promise.all([client(), client(), client()]);
    const busy = await openLoop(port, GREET, 500, seconds);
    on = false;
    await clients;
    tails.push(busy.p99 / quiet.p99);
  }
  add('p99 of triggers at 500/s next to logins without pause / quiet', `${median(tails).toFixed(1)} x`, {
    atMost: 2,
    unit: 'x',
    also: `${(logins / (rounds * seconds)).toFixed(1)} logins/s`,
  });
}
