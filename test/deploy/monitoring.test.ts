import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { parse } from 'yaml';
import { z } from 'zod';

/** Dashboards and alerts ask for metrics that there are, and the page of operators names each. */

const PROJECT = path.resolve(import.meta.dirname, '../..');
const read = (file: string): string => fs.readFileSync(path.join(PROJECT, file), 'utf8');

/** Names of all metrics, as the sources have them. */
const names = new Set(
  ['src/app', 'src/http', 'src/records', 'src/supervisor', 'src/base']
    .flatMap(folder =>
      fs
        .readdirSync(path.join(PROJECT, folder), { recursive: true, encoding: 'utf8' })
        .filter(file => file.endsWith('.ts'))
        .map(file => `${folder}/${file}`),
    )
    .flatMap(file => [...read(file).matchAll(/'(plugin_host_[a-z_]+)'/g)].map(m => m[1] ?? ''))
    .filter(name => !['plugin_host_service', 'plugin_host_template'].includes(name)),
);

/** The metrics a query asks for, without the endings of the series of a histogram. */
const askedBy = (query: string): string[] =>
  [...query.matchAll(/plugin_host_[a-z_]+/g)].map(([name]) =>
    names.has(name) ? name : name.replace(/_(bucket|sum|count)$/, ''),
  );

const rules = z.object({
  groups: z.array(
    z.object({
      name: z.string(),
      rules: z.array(
        z.object({
          alert: z.string(),
          expr: z.string(),
          for: z.string().optional(),
          labels: z.object({ severity: z.enum(['critical', 'warning', 'info']) }),
          annotations: z.object({ summary: z.string().min(10), help: z.string().min(10) }),
        }),
      ),
    }),
  ),
});

const dashboard = z.object({
  uid: z.string(),
  title: z.string(),
  panels: z.array(
    z.object({
      id: z.int(),
      title: z.string().min(3),
      gridPos: z.object({ x: z.int().min(0), y: z.int(), w: z.int().positive(), h: z.int().positive() }),
      targets: z.array(z.object({ refId: z.string(), expr: z.string(), legendFormat: z.string() })).min(1),
    }),
  ),
});

t.test('every alert says what happens and what helps, and asks for metrics that there are', async t => {
  const { groups } = rules.parse(parse(read('deploy/prometheus/alerts.yaml')));
  const all = groups.flatMap(g => g.rules);
  t.equal(new Set(all.map(r => r.alert)).size, all.length, 'names are unique');
  for (const { alert, expr } of all) {
    const asked = askedBy(expr);
    // Whether it is scraped at all, Prometheus knows itself.
    t.ok(asked.length > 0 || /\bup\{job="plugin-host"\}/.test(expr), alert);
    for (const name of asked) t.ok(names.has(name), `${alert}: ${name}`);
  }
});

t.test('every panel of a dashboard asks for metrics that there are, and none covers another', async t => {
  const asked = new Set<string>();
  for (const file of fs.readdirSync(path.join(PROJECT, 'deploy/grafana'))) {
    const { panels } = dashboard.parse(JSON.parse(read(`deploy/grafana/${file}`)));
    t.equal(new Set(panels.map(p => p.id)).size, panels.length, file);
    const taken = new Map<string, string>();
    for (const { gridPos, targets, title } of panels) {
      for (const { expr } of targets)
        for (const name of askedBy(expr)) {
          asked.add(name);
          t.ok(names.has(name), `${file}, ${title}: ${name}`);
        }
      t.ok(gridPos.x + gridPos.w <= 24, `${file}, ${title} is on the page`);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++)
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          t.equal(taken.get(`${x} ${y}`), undefined, `${title} and ${taken.get(`${x} ${y}`)}`);
          taken.set(`${x} ${y}`, title);
        }
    }
  }
  t.same(
    [...names].filter(name => !asked.has(name)),
    [],
    'every metric is on a dashboard',
  );
});

t.test('the page of operators names every metric, and no other', async t => {
  const page = read('docs/operating.md');
  const named = new Set([...page.matchAll(/`(plugin_host_[a-z_]+)`/g)].map(m => m[1] ?? ''));
  named.delete('plugin_host_service');
  t.same(
    [...names].filter(name => !named.has(name)),
    [],
    'metrics it does not name',
  );
  t.same(
    [...named].filter(name => !names.has(name)),
    [],
    'metrics there are not',
  );
});
