import { CloseButton, TextInput } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { useEffect, useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';

const DELAY_MS = 200;

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
  const [text, setText] = useState(value);
  const told = useRef(value);
  const tell = (to: string): void => {
    told.current = to;
    onChange(to === '' ? undefined : to);
  };
  const later = useDebouncedCallback(tell, DELAY_MS);
  // The address was changed from elsewhere: by a link, or by going back.
  useEffect(() => {
    if (value === told.current) return;
    told.current = value;
    setText(value);
  }, [value]);
  return (
    <TextInput
      label={label}
      placeholder={placeholder ?? t('common.all')}
      value={text}
      onChange={e => {
        setText(e.currentTarget.value);
        later(e.currentTarget.value.trim());
      }}
      rightSection={
        text === '' ? null : (
          <CloseButton
            size="sm"
            aria-label={t('common.remove')}
            onClick={() => {
              later.cancel();
              setText('');
              tell('');
            }}
          />
        )
      }
      w={{ base: '100%', xs: width }}
    />
  );
}
