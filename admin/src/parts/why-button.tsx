import { useTranslation } from 'react-i18next';
import { useRefusal } from '../app/may.tsx';
import { LinkButton } from './links.tsx';

/** Leads to the page that explains a decision, for those who may know of people. */
export function WhyButton(props: {
  search: { user?: string | undefined; plugin: string; trigger?: string; command?: string };
}) {
  const { t } = useTranslation();
  if (useRefusal()('people') !== null) return null;
  return (
    <LinkButton variant="default" to="/admin/why" search={props.search}>
      {t('nav.why')}
    </LinkButton>
  );
}
