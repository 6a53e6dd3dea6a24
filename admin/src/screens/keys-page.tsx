import { Button, Text } from '@mantine/core';
import { type Icon, IconPlus } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { Schemas } from '../api/client.ts';
import { May, type Need, useRefusal } from '../app/may.tsx';
import { useSearchState } from '../app/use-search-state.ts';
import { Dialog } from '../parts/dialog.tsx';
import { Empty } from '../parts/empty.tsx';
import { type Column, KeysetTable, useKeyset } from '../parts/keyset-list.tsx';
import { Page } from '../parts/page.tsx';
import { When } from '../parts/time.tsx';
import { isOverlapping, RotateForm } from './rotate-form.tsx';

type AnyKey = Pick<Schemas['ServiceKey'], 'id' | 'name' | 'old_secret_until'>;
type Listed<Key> = { items: Key[]; next_cursor?: string | null };

export type KeysPageProps<Key extends AnyKey, Made extends AnyKey> = {
  /** The query of the list. */
  list: readonly [string];
  load: (cursor: string | undefined) => Promise<Listed<Key>>;
  texts: { title: string; about: string; make: string; makeTitle: string; emptyTitle: string; empty: string };
  icon: Icon;
  /** What making a key needs. */
  need: Need;
  columns: (rotate: (key: Key) => void) => ReadonlyArray<Column<Key>>;
  /** Makes a key and shows its secret. */
  form: (onDone: () => void, onMade: () => void) => ReactNode;
  rotate: (key: Key, overlap: { overlap_seconds: number }) => Promise<Made>;
  /** Shows the secret after a rotation, with what is said of the old one. */
  secretOf: (made: Made, ofOld: ReactNode, onDone: () => void) => ReactNode;
};

/** Keys of one kind: a list, the dialog that makes one, and the one that gives one a new secret. */
export function KeysPage<Key extends AnyKey, Made extends AnyKey>(props: KeysPageProps<Key, Made>) {
  const { columns, form, icon, list, load, need, rotate, secretOf, texts } = props;
  const { t } = useTranslation();
  const queries = useQueryClient();
  const [{ make }, setSearch] = useSearchState();
  const mayMake = useRefusal()(need) === null;
  const [rotated, setRotated] = useState<Key | null>(null);
  const [isShown, setShown] = useState(false);
  const [isMade, setMade] = useState(false);
  const query = useKeyset<Key, Listed<Key>>(list, load);
  const close = (): void => {
    setSearch({ make: undefined });
    setRotated(null);
    setShown(false);
    setMade(false);
    void queries.invalidateQueries({ queryKey: list });
  };
  // A page loaded again now asks for no second key.
  const made = (): void => {
    setShown(true);
    setMade(true);
    setSearch({ make: undefined });
  };
  const button = (look: { variant?: 'light'; leftSection?: ReactNode }) => (
    <May need={need} isInline>
      <Button {...look} onClick={() => setSearch({ make: '1' })}>
        {texts.make}
      </Button>
    </May>
  );
  return (
    <Page title={texts.title} about={texts.about} actions={button({ leftSection: <IconPlus size={16} /> })}>
      <KeysetTable
        label={texts.title}
        query={query}
        rowKey={k => k.id}
        columns={columns(setRotated)}
        empty={<Empty icon={icon} title={texts.emptyTitle} text={texts.empty} action={button({ variant: 'light' })} />}
      />
      <Dialog opened={(make === '1' && mayMake) || isMade} onClose={close} title={texts.makeTitle} isLocked={isShown}>
        {form(close, made)}
      </Dialog>
      <Dialog
        opened={rotated !== null}
        isLocked={isShown}
        onClose={close}
        title={rotated === null ? '' : t('serviceKeys.rotateLabel', { name: rotated.name })}
      >
        {rotated !== null && (
          <RotateForm
            rotated={rotated}
            rotate={overlap => rotate(rotated, overlap)}
            secretOf={(key, ofOld) => secretOf(key, ofOld, close)}
            onDone={close}
            onMade={() => setShown(true)}
          />
        )}
      </Dialog>
    </Page>
  );
}

/** Until when the secret before the last rotation works on. */
export function OldSecret({ of: k, hiddenFrom }: { of: AnyKey; hiddenFrom?: 'lg' }) {
  const { t } = useTranslation();
  if (!isOverlapping(k)) return null;
  return (
    <Text size="xs" c="dimmed" component="div" hiddenFrom={hiddenFrom}>
      {t('serviceKeys.oldUntil')} <When at={k.old_secret_until} />
    </Text>
  );
}

export function RotateButton({ name, onRotate }: { name: string; onRotate: () => void }) {
  const { t } = useTranslation();
  return (
    <Button size="compact-sm" variant="light" aria-label={t('serviceKeys.rotateLabel', { name })} onClick={onRotate}>
      {t('serviceKeys.rotate')}
    </Button>
  );
}
