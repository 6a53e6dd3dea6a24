import { Alert, createTheme, Drawer, defaultVariantColorsResolver, Modal, Notification } from '@mantine/core';

/** The value under which the policy of the page allows styles that are made here. */
export const styleNonce = (): string =>
  document.querySelector<HTMLMetaElement>('meta[name=style-nonce]')?.content ?? '';

// Packages below Mantine look for it under this name.
Object.assign(globalThis, { __webpack_nonce__: styleNonce() });

/** A colour of the kit for text, on white, on black and on its own pale shade, with the contrast that WCAG AA asks for. */
export const readable = (color: string): string =>
  `light-dark(color-mix(in srgb, var(--mantine-color-${color}-9), black 25%), var(--mantine-color-${color}-2))`;

/** A colour of the kit, by its name alone. */
const COLOUR = /^[a-z]+$/;

/**
 * Fonts are the system's: nothing is loaded from elsewhere.
 *
 * @param close what a cross says to those who do not see it
 * @param show what the eye of a password field says to them
 */
export const themeOf = (close: string, show: string) =>
  createTheme({
    primaryColor: 'indigo',
    primaryShade: 7,
    defaultRadius: 'md',
    autoContrast: true,
    respectReducedMotion: true,
    fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif',
    fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, "Noto Sans Mono", monospace',
    variantColorResolver(input) {
      const colours = defaultVariantColorsResolver(input);
      // White on the kit's red is too pale.
      if (input.variant === 'filled' && input.color === 'red')
        return {
          ...colours,
          background: 'var(--mantine-color-red-9)',
          hover: 'color-mix(in srgb, var(--mantine-color-red-9), black 12%)',
        };
      if (input.variant !== 'light' || typeof input.color !== 'string' || !COLOUR.test(input.color)) return colours;
      return { ...colours, color: readable(input.color) };
    },
    headings: { fontWeight: '650' },
    components: {
      // What is said there is what there is to read: grey on grey it is too pale.
      Notification: Notification.extend({
        defaultProps: { closeButtonProps: { 'aria-label': close } },
        styles: { description: { color: 'var(--mantine-color-text)' } },
      }),
      Modal: Modal.extend({
        defaultProps: { closeButtonProps: { 'aria-label': close } },
        styles: { title: { lineHeight: 1.3 } },
      }),
      Drawer: Drawer.extend({ defaultProps: { closeButtonProps: { 'aria-label': close } } }),
      // In its colour the title is too pale on the colour behind it.
      Alert: Alert.extend({ styles: { title: { color: 'var(--mantine-color-text)' } } }),
      // Styled in page.css; by name alone, so that the first view does not load what only later screens show.
      Button: { classNames: { root: 'button', label: 'button-label' } },
      PasswordInput: { defaultProps: { visibilityToggleButtonProps: { 'aria-label': show } } },
      // Links stand out from the row that is pointed at.
      Table: { defaultProps: { highlightOnHoverColor: 'light-dark(#f6f7f9, var(--mantine-color-dark-5))' } },
      Stepper: { classNames: { step: 'step', stepBody: 'step-body', separator: 'step-separator' } },
      Tabs: { classNames: { tab: 'tab' } },
      Timeline: { styles: { itemTitle: { lineHeight: 1.3 } } },
    },
  });
