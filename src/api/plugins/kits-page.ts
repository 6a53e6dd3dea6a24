import { escapeHtml } from '../../base/html.ts';
import type { GalleryEntry } from './gallery-api.ts';

/** `GET /kits/`: where authors begin, and which plugins come with the service. Without scripts, and nothing is loaded. */

export const KITS_STYLE = `
:root { color-scheme: light dark; --line: #8884; --soft: #8882; --mark: #0a58ca; }
@media (prefers-color-scheme: dark) { :root { --mark: #79b8ff; } }
body { margin: 0 auto; max-width: 48rem; padding: 1rem; font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
a { color: var(--mark); }
pre { background: var(--soft); padding: 0.7rem 0.9rem; border-radius: 6px; overflow: auto; font: 0.875rem/1.45 ui-monospace, monospace; }
ul { list-style: none; margin: 0; padding: 0; }
li { border-top: 1px solid var(--line); padding: 0.7rem 0; }
h3 { margin: 0; font-size: 1rem; }
p { margin: 0.2rem 0; }
small { opacity: 0.75; }
`;

const rowOf = ({ id, language, name, summary }: GalleryEntry): string => `<li id="${escapeHtml(id)}">
<h3>${escapeHtml(name)} <small>${escapeHtml(language)}</small></h3>
<p>${escapeHtml(summary)}</p>
<p><a href="/admin/plugins/gallery?plugin=${encodeURIComponent(id)}">Review and install ${escapeHtml(name)}</a></p>
</li>`;

/** @param base address under which the service is reached, without a slash at its end */
export const kitsPage = (base: string, plugins: readonly GalleryEntry[]): string => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Kits and gallery</title>
<style>${KITS_STYLE}</style>
<main>
<h1>Kits and gallery</h1>
<h2>Write a plugin</h2>
<p>In TypeScript, Go, Rust, C or AssemblyScript; Node 20 with npm is all that TypeScript and AssemblyScript need.</p>
<pre>npm install --global ${escapeHtml(base)}/kits/plugin-host.tgz
plugin-host plugin new hello --lang ts --dev</pre>
<h2>Plugins that come with the service</h2>
<p>An administrator reads what a plugin asks for, and installs it. Each is also a folder of sources to begin with:
<code>plugin-host plugin new my-hours --lang ts --template office-hours</code></p>
<ul>
${plugins.map(rowOf).join('\n')}
</ul>
</main>
</html>
`;
