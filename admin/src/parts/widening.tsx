import { List } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { Widening } from '../api/problem.ts';

/** What an upgrade widens, in the language of the page; the service says in English which rule it was. */
export function WideningList({ widens }: { widens: readonly Widening[] }) {
  const { i18n, t } = useTranslation();
  return (
    <List size="sm" spacing="xs" style={{ overflowWrap: 'anywhere' }}>
      {widens.map(w => {
        const key = `widening.${w.kind}`;
        return (
          <List.Item key={`${w.kind} ${w.name}`}>
            {i18n.exists(key) ? t(key as 'widening.policy', { name: w.name, detail: w.message }) : w.message}
          </List.Item>
        );
      })}
    </List>
  );
}
