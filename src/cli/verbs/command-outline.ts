/** What the command line takes, for the manual page and for completion. */
export type OptionOutline = { flags: string; about: string; long: string; takesValue: boolean };

export type CommandOutline = {
  /** Without the program's own name: `['plugin', 'list']`. */
  words: string[];
  /** Names of its arguments, in order. */
  args: string[];
  about: string;
  options: OptionOutline[];
};

export type ProgramOutline = { about: string; options: OptionOutline[]; commands: CommandOutline[] };
