import { type AnchorProps, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { useRefusal } from '../app/may.tsx';
import { LinkAnchor } from './links.tsx';

/** Leads to the page of a person; for those who may not read people, the same text without a way on. */
export function PersonAnchor(
  props: { user: number; children: ReactNode } & Pick<AnchorProps, 'size' | 'fw' | 'underline' | 'style'>,
) {
  const { children, user, ...look } = props;
  const refusal = useRefusal()('people');
  if (refusal !== null)
    return (
      <Text span size={look.size} fw={look.fw} style={look.style}>
        {children}
      </Text>
    );
  return (
    <LinkAnchor to="/admin/people/$user" params={{ user: String(user) }} {...look}>
      {children}
    </LinkAnchor>
  );
}
