"""Random requests to two servers, one of each of two source trees, and a comparison of their answers.

    python -m tests.differential --against FOLDER --requests 10000 --seed 1

FOLDER is another checkout of this repository with its own `.venv` (`make setup` there). A change that is to change no
answer is tried so: requests of all transports, of clients with different rights, right ones and wrong ones, changes
too, must have the same bytes from both servers, and the same lines in the audit log. Of what is random in an answer,
an id of a topic must stand for the same topic throughout, and times count for nothing.
"""
