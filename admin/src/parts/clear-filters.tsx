import { Button } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { useSearchState } from '../app/use-search-state.ts';

/** Shows the whole list again, where filters in the address leave nothing of it. */
export function ClearFilters({ of }: { of: readonly string[] }) {
  const { t } = useTranslation();
  const [search, setSearch] = useSearchState();
  if (of.every(name => search[name] === undefined)) return null;
  return (
    <Button variant="default" onClick={() => setSearch(Object.fromEntries(of.map(name => [name, undefined])))}>
      {t('common.noFilter')}
    </Button>
  );
}
