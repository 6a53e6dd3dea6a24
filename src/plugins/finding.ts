/** A finding of the gate, as a sentence. `refusal` stops the upload; `warning` and `note` inform the administrator. */
export type Finding = { level: 'refusal' | 'warning' | 'note'; rule: string; message: string; where?: string };
