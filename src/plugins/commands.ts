import type { MessengerTrigger } from './manifest.ts';
import type { InstalledPlugin, PluginRegistry } from './registry.ts';

/** A messenger trigger of an installed plugin; its name is the command word (docs/messengers.md "Commands"). */
export type Command = {
  plugin: InstalledPlugin;
  trigger: MessengerTrigger;
  /** The unique name: `plugin.command`. */
  qualified: string;
  /** The name shown to users: only the word if no other plugin has it. */
  shown: string;
};

function* all(registry: PluginRegistry): Generator<Omit<Command, 'shown'>> {
  for (const plugin of registry.installed()) {
    if (!plugin.enabled) continue;
    for (const trigger of plugin.manifest.triggers)
      if (trigger.type === 'messenger') yield { plugin, trigger, qualified: `${plugin.id}.${trigger.name}` };
  }
}

/** All commands, ordered by name. */
export function listCommands(registry: PluginRegistry): Command[] {
  const commands = [...all(registry)];
  const count = new Map<string, number>();
  for (const { trigger } of commands) {
    const word = trigger.name.toLowerCase();
    count.set(word, (count.get(word) ?? 0) + 1);
  }
  return commands
    .map(c => ({ ...c, shown: count.get(c.trigger.name.toLowerCase()) === 1 ? c.trigger.name : c.qualified }))
    .sort((a, b) => (a.shown < b.shown ? -1 : 1));
}

/** The commands with this word, ignoring case: none, one, or those of several plugins. */
export function findCommand(registry: PluginRegistry, word: string): Command[] {
  const wanted = word.toLowerCase();
  const commands = listCommands(registry);
  const byWord = commands.filter(c => c.trigger.name.toLowerCase() === wanted);
  return byWord.length > 0 ? byWord : commands.filter(c => c.qualified.toLowerCase() === wanted);
}
