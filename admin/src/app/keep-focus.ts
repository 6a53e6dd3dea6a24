/**
 * Gives a button its focus back when what it has done is over. The kit switches a button off meanwhile, and a button that
 * is off loses the focus: the next key would do nothing.
 */
export function keepFocus(): void {
  let pressed: HTMLButtonElement | null = null;
  // A key that presses a button is a click, too.
  const note = ({ target }: Event): void => {
    pressed = target instanceof Element ? target.closest('button') : null;
  };
  document.addEventListener('click', note, true);
  new MutationObserver(() => {
    if (pressed?.isConnected && !pressed.disabled && document.activeElement === document.body)
      pressed.focus({ preventScroll: true });
  }).observe(document.body, { attributes: true, attributeFilter: ['disabled'], subtree: true });
}
