import { useDebouncedCallback } from '@mantine/hooks';
import { useEffect, useRef, useState } from 'react';

const DELAY_MS = 200;

/**
 * The text of a filter, which counts when typing has paused, and follows the address when that changes.
 *
 * @param value of the address
 * @param onChange gets it without spaces around it
 */
export function useTypedText(value: string, onChange: (text: string) => void) {
  const [text, setText] = useState(value);
  const told = useRef(value);
  const tell = (to: string): void => {
    told.current = to;
    onChange(to);
  };
  const later = useDebouncedCallback(tell, DELAY_MS);
  // The address was changed from elsewhere: by a link, or by going back.
  useEffect(() => {
    if (value === told.current) return;
    told.current = value;
    setText(value);
  }, [value]);
  return {
    text,
    type(to: string): void {
      setText(to);
      later(to.trim());
    },
    clear(): void {
      later.cancel();
      setText('');
      tell('');
    },
  };
}
