/** What a command prints with `--json`: one document on standard output (docs/operating.md "JSON for programs"). */
export const jsonText = (value: object): string => JSON.stringify(value, null, 2);
