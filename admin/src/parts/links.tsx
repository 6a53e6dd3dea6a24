import { Anchor, type AnchorProps, Button, type ButtonProps } from '@mantine/core';
import { createLink } from '@tanstack/react-router';
import type { ReactNode, Ref } from 'react';
import { useTranslation } from 'react-i18next';

/** Links to screens: the type check knows each screen and what its address needs. */
export const LinkAnchor = createLink(
  ({ ref, ...props }: AnchorProps & { ref?: Ref<HTMLAnchorElement>; children?: ReactNode }) => (
    <Anchor ref={ref} {...props} />
  ),
);

export const LinkButton = createLink(
  ({ ref, ...props }: ButtonProps & { ref?: Ref<HTMLAnchorElement>; children?: ReactNode }) => (
    <Button component="a" ref={ref} {...props} />
  ),
);

/** The way back from a screen of a plugin. */
export function PluginCrumbs({ id, tab }: { id?: string; tab?: string }) {
  const { t } = useTranslation();
  return (
    <>
      <LinkAnchor to="/admin/plugins" size="sm">
        {t('nav.plugins')}
      </LinkAnchor>
      {id !== undefined && (
        <>
          {' / '}
          <LinkAnchor to="/admin/plugins/$id" params={{ id }} search={{ tab }} size="sm">
            {id}
          </LinkAnchor>
        </>
      )}
    </>
  );
}
