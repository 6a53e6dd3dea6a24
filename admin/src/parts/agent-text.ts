const BROWSERS: ReadonlyArray<readonly [pattern: RegExp, name: string]> = [
  [/Edg\//, 'Edge'],
  [/YaBrowser\//, 'Yandex Browser'],
  [/OPR\//, 'Opera'],
  [/Firefox\//, 'Firefox'],
  [/Chrome\//, 'Chrome'],
  [/Safari\//, 'Safari'],
];
const SYSTEMS: ReadonlyArray<readonly [pattern: RegExp, name: string]> = [
  [/Android/, 'Android'],
  [/iPhone|iPad/, 'iOS'],
  [/Windows/, 'Windows'],
  [/Mac OS X/, 'macOS'],
  [/Linux/, 'Linux'],
];

/** A browser and its system in a word each; another program as it names itself. */
export function agentText(agent: string): string {
  const browser = BROWSERS.find(([p]) => p.test(agent))?.[1];
  const system = SYSTEMS.find(([p]) => p.test(agent))?.[1];
  if (browser === undefined) return agent.slice(0, 60);
  return system === undefined ? browser : `${browser}, ${system}`;
}
