/** Every screen in both languages and colour schemes, and the pages of those who log in. */
import './stories/every-screen.ts';
import './stories/second-factor.ts';
import './stories/users.ts';
