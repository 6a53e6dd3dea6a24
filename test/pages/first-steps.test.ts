/** From an empty service to a plugin that answers, in a browser. */
import './stories/first-plugin.ts';
import './stories/keyboard.ts';
import './stories/widening.ts';
