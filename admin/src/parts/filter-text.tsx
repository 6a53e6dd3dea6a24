import { CloseButton, TextInput } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { useTypedText } from './use-typed-text.ts';

/** A filter of a list in words, with its label above it. It counts when typing has paused. */
export function FilterText(props: {
  label: string;
  value: string | undefined;
  onChange: (value: string | undefined) => void;
  placeholder?: string;
  width?: number;
}) {
  const { label, onChange, placeholder, value = '', width = 200 } = props;
  const { t } = useTranslation();
  const typed = useTypedText(value, to => onChange(to === '' ? undefined : to));
  return (
    <TextInput
      label={label}
      placeholder={placeholder ?? t('common.all')}
      value={typed.text}
      onChange={e => typed.type(e.currentTarget.value)}
      rightSection={
        typed.text === '' ? null : <CloseButton size="sm" aria-label={t('common.remove')} onClick={typed.clear} />
      }
      w={{ base: '100%', xs: width }}
    />
  );
}
