import { makeLog, standardOutput } from '../base/log.ts';
import type { Config } from '../config/load.ts';
import { publicBaseOf } from '../config/load.ts';

/** Messages of `serve` for the operator: text on a terminal, JSON lines otherwise. */
export type Announcer = {
  progress(text: string): void;
  warn(text: string): void;
  /** Announces that the service is ready for the first time. */
  ready(port: number, setupToken: string | null): void;
  /** Writes what waits, before the process goes on as another program. */
  flush(): void;
};

type Screen = { isTTY?: boolean; write(text: string): unknown };

type Fact = { key: string; label: string; value: string };

/** Addresses to open, and commands for the shell. */
function factsOf(config: Config, port: number, setupToken: string | null, sample: boolean): Fact[] {
  const base = publicBaseOf(config, port);
  // Passkeys do not work on an IP address.
  const pages = base.replace('//127.0.0.1:', '//localhost:');
  const facts: Fact[] = [];
  if (setupToken === null) facts.push({ key: 'admin_page', label: 'admin page', value: `${pages}/admin/` });
  else if (config.values['admin.setup'] === 'token')
    facts.push(
      { key: 'setup_token', label: 'setup token', value: setupToken },
      { key: 'setup_link', label: 'setup link', value: `${pages}/admin/#token=${setupToken}` },
      {
        key: 'admin_api',
        label: 'admin API',
        value: `curl -H 'Authorization: Bearer ${setupToken}' ${base}/api/admin/plugins`,
      },
    );
  if (sample)
    facts.push({
      key: 'try_it',
      label: 'try it',
      value: `curl '${base}/api/triggers/http/hello/greet?name=world'`,
    });
  return facts;
}

function onTerminal(config: Config, sample: boolean, out: Screen): Announcer {
  const line = (text: string): void => void out.write(`${text}\n`);
  return {
    progress: text => line(`[plugin-host] ${text}`),
    warn: text => line(`[plugin-host] warning: ${text}`),
    flush() {},
    ready(port, setupToken) {
      const facts = factsOf(config, port, setupToken, sample);
      line(`\n  plugin host is ready: ${publicBaseOf(config, port)}`);
      for (const { label, value } of facts) line(`  ${`${label}:`.padEnd(12)} ${value}`);
      line('');
    },
  };
}

/**
 * Writes one JSON line for each message, whatever `log.level` is, because the operator needs the setup token. The
 * banner is one line with the same words as on a terminal.
 */
function asJson(config: Config, sample: boolean, journal: string | undefined): Announcer {
  const output = standardOutput(journal);
  const log = makeLog('info', output);
  return {
    flush: () => output.flush(),
    progress: text => log.info(text),
    warn: text => log.warn(text),
    ready(port, setupToken) {
      const facts = factsOf(config, port, setupToken, sample);
      const base = publicBaseOf(config, port);
      // A blank on both sides of every value, so that a script can cut it out of the line by its label.
      const words = facts.map(f => `${f.label}: ${f.value} | `).join('');
      log.info(
        { url: base, pid: process.pid, ...Object.fromEntries(facts.map(f => [f.key, f.value])) },
        `plugin host is ready: ${base} | ${words}stop it with SIGTERM`,
      );
    },
  };
}

/**
 * @param sample whether the sample plugin is installed; the announcement then shows how to call it
 * @param journal the variable `JOURNAL_STREAM`
 */
export function makeAnnouncer(config: Config, sample: boolean, out: Screen, journal?: string): Announcer {
  const isForPeople = out.isTTY === true || config.values['log.format'] === 'pretty';
  return isForPeople ? onTerminal(config, sample, out) : asJson(config, sample, journal);
}
