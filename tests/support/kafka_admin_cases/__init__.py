"""Topic administration as clients of Kafka do it, case by case, and what a broker of 4.3.1 answered."""
