import { Button, Group, Stack } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { ProblemAlert } from './problem.tsx';
import type { Draft } from './use-draft.ts';
import { useLeaveQuestion } from './use-leave-question.ts';

type Send<T> = (value: T, tag: string) => Promise<unknown>;

/** Saves a draft or drops it. A refusal stands above the buttons, and leaving the page with a draft is asked about. */
export function DraftBar<T>(props: {
  draft: Draft<T>;
  /** What is saved; the draft as it is typed where nothing is given. */
  value?: T;
  send: Send<T>;
  /** One more button, with what saves another value. */
  more?: (save: (value: T) => void, isOff: boolean) => ReactNode;
}) {
  const { draft, more, send, value = draft.value } = props;
  const { t } = useTranslation();
  const [refused, setRefused] = useState<{ problem: unknown; draft: string } | null>(null);
  const [isSaving, setSaving] = useState(false);
  useLeaveQuestion(draft.isChanged, t('common.leaveText'));
  // A refusal is of what was sent: it goes with the next letter that is typed, and with what is read again.
  const now = JSON.stringify([draft.saved, draft.value]);
  const save = async (chosen: T): Promise<void> => {
    setSaving(true);
    setRefused(null);
    try {
      await draft.save(chosen, send);
    } catch (problem) {
      setRefused({ problem, draft: now });
    } finally {
      setSaving(false);
    }
  };
  const isOff = isSaving || draft.isOutdated;
  return (
    <Stack gap="xs">
      {/* What another administrator has saved is shown by the form. */}
      {refused?.draft === now && !draft.isOutdated && <ProblemAlert error={refused.problem} />}
      <Group>
        <Button loading={isSaving} disabled={!draft.isChanged || isOff} onClick={() => void save(value)}>
          {t('common.save')}
        </Button>
        {draft.isChanged && (
          <Button variant="default" disabled={isSaving} onClick={draft.drop}>
            {t('policy.discard')}
          </Button>
        )}
        {more?.(chosen => void save(chosen), isOff)}
      </Group>
    </Stack>
  );
}
