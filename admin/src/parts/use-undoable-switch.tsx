import { Button, Group, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useQueryClient } from '@tanstack/react-query';
import { useRef } from 'react';
import { useTranslation } from 'react-i18next';
import { ApiProblem } from '../api/problem.ts';
import { memberText, notifyProblem } from './problem.tsx';

/** Long enough to get there with the keyboard. */
const UNDO_MS = 20_000;

/** A switch of a trigger or command of a plugin. */
export type SwitchChange = {
  plugin: string;
  /** The trigger or command. */
  name: string;
  /** What it switches, in the words of the page. */
  member: string;
  /** What is saved, with its tag. */
  read(): Promise<{ value: boolean; tag: string }>;
  /** @returns the tag of the settings as they are then */
  send(value: boolean, tag: string): Promise<string>;
};

/** Turns a switch; what it brought is shown with the way back. */
export function useUndoableSwitch(): (change: SwitchChange, value: boolean) => Promise<void> {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const shown = useRef('');
  const last = useRef(new Map<string, Promise<void>>());
  const turn = async ({ member, name, plugin, read, send }: SwitchChange, value: boolean): Promise<void> => {
    const readAgain = (): Promise<void> => queries.invalidateQueries({ queryKey: ['plugins', plugin] });
    /** What another administrator has changed since may make it mean something else. */
    const undo = (tag: string): void => {
      notifications.hide(shown.current);
      send(!value, tag)
        .catch((problem: unknown) => {
          if (!(problem instanceof ApiProblem) || problem.code !== 'precondition_failed') return notifyProblem(problem);
          const members = problem.changed.map(memberText).join(', ');
          notifications.show({
            color: 'red',
            message: t('access.notUndone', { trigger: name, members }),
            autoClose: UNDO_MS,
          });
        })
        .finally(readAgain);
    };
    try {
      const now = await read();
      // Another administrator did the same: there is nothing of one's own to take back.
      if (now.value === value) return await readAgain();
      const tag = await send(value, now.tag);
      await readAgain();
      notifications.hide(shown.current);
      const id = `undo ${plugin} ${name} ${tag}`;
      shown.current = id;
      let isUndone = false;
      notifications.show({
        id,
        color: 'teal',
        autoClose: UNDO_MS,
        message: (
          <Group justify="space-between" wrap="nowrap">
            <Text size="sm">
              {t('access.saved', { trigger: name, what: `${member} – ${t(value ? 'common.on' : 'common.off')}` })}
            </Text>
            <Button
              size="compact-sm"
              variant="light"
              onClick={() => {
                // It can be clicked while it fades out.
                if (!isUndone) undo(tag);
                isUndone = true;
              }}
            >
              {t('common.undo')}
            </Button>
          </Group>
        ),
      });
    } catch (problem) {
      notifyProblem(problem);
    }
  };
  // One after the other, so that the next one finds the tag that the one before has left.
  return (change, value) => {
    const next = (last.current.get(change.name) ?? Promise.resolve()).then(() => turn(change, value));
    last.current.set(change.name, next);
    return next;
  };
}
