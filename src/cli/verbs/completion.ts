import { UsageError } from '../../base/errors.ts';
import type { ProgramOutline } from './command-outline.ts';

/** Arguments that are files. */
const FILE_OPTIONS = ['--config', '--config-file', '--frontend'];

/** Every beginning of a command with the words that may follow it. */
function nextWords(program: ProgramOutline): Map<string, string[]> {
  const next = new Map<string, Set<string>>();
  for (const { words } of program.commands)
    for (const [k, word] of words.entries()) {
      const before = words.slice(0, k).join(' ');
      const known = next.get(before) ?? new Set();
      next.set(before, known.add(word));
    }
  return new Map([...next].map(([before, words]) => [before, [...words].sort()]));
}

function bashCompletion(program: ProgramOutline): string {
  const words = [...nextWords(program)].map(([before, next]) => `    '${before}') words='${next.join(' ')}' ;;`);
  const optionsOf = program.commands.map(
    c =>
      `    '${c.words.join(' ')}'|'${c.words.join(' ')} '*) options='${[...c.options, ...program.options].map(o => o.long).join(' ')}' ;;`,
  );
  const everyOption = [...program.options, ...program.commands.flatMap(c => c.options)];
  const withValue = [...new Set(everyOption.filter(o => o.takesValue).map(o => o.long))];
  return `# Completion of plugin-host for bash, made by "plugin-host completion bash".
_plugin_host() {
  local current=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} command='' word words='' options='${program.options.map(o => o.long).join(' ')}'
  COMPREPLY=()
  case $before in
    ${FILE_OPTIONS.join('|')}) compopt -o filenames; COMPREPLY=($(compgen -f -- "$current")); return ;;
  esac
  local skip=''
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    if [ -n "$skip" ]; then skip=''; continue; fi
    case $word in
      ${withValue.join('|')}) skip=yes ;;
      -*) ;;
      *) command="\${command:+$command }$word" ;;
    esac
  done
  case $command in
${words.join('\n')}
  esac
  case $command in
${optionsOf.join('\n')}
  esac
  case $current in
    -*) COMPREPLY=($(compgen -W "$options" -- "$current")) ;;
    *)
      COMPREPLY=($(compgen -W "$words" -- "$current"))
      [ -n "$words" ] || { compopt -o filenames; COMPREPLY=($(compgen -f -- "$current")); } ;;
  esac
}
complete -F _plugin_host plugin-host
`;
}

/**
 * The script that completes commands and options in a shell.
 *
 * @param shell `bash`, the one there is a script for
 * @throws UsageError for another one
 */
export function completion(shell: string, program: ProgramOutline): string {
  if (shell !== 'bash') throw new UsageError(`there is completion for bash, not for "${shell}"`);
  return bashCompletion(program);
}
