import { useSyncExternalStore } from 'react';
import type { PublicPlace, Widening } from './problem.ts';

/** What the page must ask before a request can go on; the answer resolves the promise of `ask`. */
export type Question =
  | { kind: 'password'; error: string }
  | { kind: 'login' }
  | { kind: 'provider'; path: string }
  | { kind: 'wider'; places: readonly PublicPlace[]; widens: readonly Widening[] }
  | { kind: 'confirm'; title: string; text: string; action: string; isDangerous: boolean; typed?: string };

export type Asked = { question: Question; answer(value: string | null): void };

let current: Asked | null = null;
const waiting: Asked[] = [];
const listeners = new Set<() => void>();

function show(next: Asked | null): void {
  current = next;
  for (const listener of listeners) listener();
}

/**
 * Asks over the page; what is typed in it stays. Questions wait for each other.
 *
 * @returns the answer, or null when it was cancelled
 */
export function ask(question: Question): Promise<string | null> {
  return new Promise(resolve => {
    let isAnswered = false;
    const asked: Asked = {
      question,
      answer(value) {
        // A dialog that is closed while its answer is on the way answers twice.
        if (isAnswered) return;
        isAnswered = true;
        show(waiting.shift() ?? null);
        resolve(value);
      },
    };
    if (current === null) return show(asked);
    // What another question asks the service waits for the login.
    if (question.kind !== 'login') waiting.push(asked);
    else {
      waiting.unshift(current);
      show(asked);
    }
  });
}

/** Whether an action is to be done. */
export const confirmed = async (question: Omit<Extract<Question, { kind: 'confirm' }>, 'kind'>): Promise<boolean> =>
  (await ask({ kind: 'confirm', ...question })) !== null;

export const useQuestion = (): Asked | null =>
  useSyncExternalStore(
    listener => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => current,
  );
