import { Button, List, Menu } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { IconDots, IconDownload, IconUserOff } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { confirmed } from '../api/questions.ts';
import { useRefusal } from '../app/may.tsx';
import { notifyDone, notifyProblem } from '../parts/problem.tsx';
import { saveText } from '../parts/save-file.ts';
import { nameOf } from './people.tsx';

function Remarks({ lines }: { lines: readonly string[] }) {
  return (
    <List size="sm" lang="en">
      {lines.map(line => (
        <List.Item key={line}>{line}</List.Item>
      ))}
    </List>
  );
}

/** What is seldom done with a person: everything that is held of them as a file, and an end to all of it. */
export function PersonActions({ person }: { person: Schemas['User'] }) {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const go = useNavigate();
  const refusal = useRefusal()('owner');
  const params = { path: { user: person.id } };
  const name = nameOf(person);
  const download = async (): Promise<void> => {
    try {
      const held = answered(await api.GET('/api/admin/users/{user}/export', { params }));
      saveText(`person-${person.id}.json`, `${JSON.stringify(held, null, 2)}\n`, 'application/json');
      notifyDone(t('person.exported', { name }));
    } catch (problem) {
      notifyProblem(problem);
    }
  };
  const erase = async (): Promise<void> => {
    const question = {
      title: t('person.eraseTitle', { name }),
      text: t('person.eraseText'),
      action: t('person.erase'),
      isDangerous: true,
      typed: name,
    };
    if (!(await confirmed(question))) return;
    try {
      const { remarks } = answered(await api.POST('/api/admin/users/{user}/erase', { params, body: { erase: true } }));
      notifications.show({
        color: 'teal',
        title: t('person.erased', { name }),
        // What stays, and for how long: it is said once.
        message: remarks.length === 0 ? undefined : <Remarks lines={remarks} />,
        autoClose: remarks.length === 0 ? 4000 : false,
      });
      queries.removeQueries({ queryKey: ['users', 'one', person.id] });
      await go({ to: '/admin/people' });
      await queries.invalidateQueries({ queryKey: ['users'] });
    } catch (problem) {
      notifyProblem(problem);
    }
  };
  return (
    <Menu position="bottom-end" withinPortal>
      <Menu.Target>
        <Button variant="default" px={10} aria-label={`${t('common.moreActions')}: ${name}`}>
          <IconDots size={18} aria-hidden />
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {refusal !== null && <Menu.Label maw={280}>{refusal}</Menu.Label>}
        <Menu.Item disabled={refusal !== null} leftSection={<IconDownload size={16} />} onClick={() => void download()}>
          {t('person.export')}
        </Menu.Item>
        <Menu.Item
          disabled={refusal !== null}
          color="red"
          leftSection={<IconUserOff size={16} />}
          onClick={() => void erase()}
        >
          {t('person.erase')}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
